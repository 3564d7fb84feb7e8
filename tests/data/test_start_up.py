"""Only batches need torch, and no module of the data side loads tables that its caller may not need."""

import subprocess
import sys
from pathlib import Path

import pipeline.data


def test_no_module_of_data_but_batches_imports_torch():
    folder = Path(pipeline.data.__file__).parent
    modules = {path.relative_to(folder).with_suffix("").parts for path in folder.rglob("*.py")}
    names = {
        ".".join(("pipeline.data", *parts)) for parts in modules if parts[0] != "batches" and parts[-1] != "__init__"
    }
    assert len(names) > 30
    check = f"import sys; {'; '.join(f'import {name}' for name in sorted(names))}; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", check], check=True)


def test_dataset_records_import_no_table_of_languages():
    check = "import sys, pipeline.data.dataset; assert 'langcodes' not in sys.modules"
    subprocess.run([sys.executable, "-c", check], check=True)
