"""Repairs rename a damaged file once, however many products list it."""

from reprise.cli.verify import Repairs
from reprise.product_checks import FileCheck, Finding


def test_a_file_of_two_products_is_set_aside_once(tmp_path, monkeypatch):
    monkeypatch.setattr(Repairs, "restore", lambda *_: False)
    path, repairs = tmp_path / "outputs.json.part", Repairs()
    path.write_text("damaged")
    findings = [Finding(None, [FileCheck(path, "damaged", 0, "cut")]) for _ in range(2)]
    repairs.repair(None, findings[0])
    path.write_text("written again")
    repairs.repair(None, findings[1])
    assert path.read_text() == "written again"
    assert [aside.read_text() for aside in repairs.asides.values()] == ["damaged"]
