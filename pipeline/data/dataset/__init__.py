"""Datasets as data: the records of `workflow/datasets/<name>.yaml`, one module for each family."""

from pipeline.data.dataset.base import *
from pipeline.data.dataset.loading import *
from pipeline.data.dataset.parallel import *
from pipeline.data.dataset.speech import *
from pipeline.data.dataset.treebank import *
