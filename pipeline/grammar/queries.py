"""The search domain: queries, lower-case fragments without punctuation, the frequent patterns first."""

from pipeline.grammar import goods_queries, topic_queries
from pipeline.grammar.choice import Zipf
from pipeline.grammar.query_parts import Query, QueryParts

PATTERNS = Zipf(
    [
        goods_queries.sites,
        goods_queries.errand,
        goods_queries.how_to,
        goods_queries.wares,
        goods_queries.where_to,
        topic_queries.journey,
        topic_queries.works,
        goods_queries.rent,
        topic_queries.recipe,
        goods_queries.cost,
        topic_queries.town_topic,
        topic_queries.outing,
        topic_queries.who,
        goods_queries.hours,
        topic_queries.disease,
        topic_queries.jobs,
        goods_queries.difference,
        topic_queries.may_eat,
    ],
    12,
)


def draw_query(parts: QueryParts) -> Query:
    """One query of any pattern."""
    return PATTERNS(parts.rng)(parts)
