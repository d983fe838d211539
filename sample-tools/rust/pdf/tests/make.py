"""Makes the files of tests/data. Needs fpdf2 2.8, reportlab 4, pikepdf 10, Pillow and DejaVu."""

import datetime
import pathlib

import pikepdf
from fpdf import FPDF
from PIL import Image
from reportlab.pdfgen import canvas

DATA = pathlib.Path(__file__).parent / "data"
DATE = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc)


def document(**encryption):
    pdf = FPDF()
    pdf.set_creation_date(DATE)
    if encryption:
        pdf.set_encryption(**encryption)
    pdf.add_page()
    pdf.set_font("helvetica", size=12)
    return pdf


def report():
    """Three pages with an outline, paragraphs and a table, in the standard fonts."""
    pdf = document()
    pdf.set_title("Report")
    pdf.set_author("Ada Lovelace")
    for number in range(1, 4):
        if number > 1:
            pdf.add_page()
        pdf.set_font("helvetica", size=14)
        pdf.start_section(f"Part {number}")
        pdf.cell(text=f"Heading of page {number}")
        pdf.ln(10)
        pdf.set_font("times", size=11)
        pdf.multi_cell(0, 6, "The quick brown fox jumps over the lazy dog. " * 4)
        pdf.ln(4)
        with pdf.table() as table:
            for cells in [("Name", "Units"), ("Bolt", str(12 * number)), ("Nut", "40")]:
                row = table.row()
                for cell in cells:
                    row.cell(cell)
    pdf.output(DATA / "report.pdf")
    # The same in object streams, with a table of objects in a stream.
    with pikepdf.open(DATA / "report.pdf") as copy:
        mode = pikepdf.ObjectStreamMode.generate
        copy.save(DATA / "packed.pdf", object_stream_mode=mode, deterministic_id=True)
    content = (DATA / "report.pdf").read_bytes()
    (DATA / "cut.pdf").write_bytes(content[: len(content) * 2 // 3])


def unicode():
    """An embedded font whose codes have two bytes."""
    pdf = document()
    pdf.add_font("sans", fname="/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf")
    pdf.set_font("sans", size=12)
    pdf.cell(text="Grüße, naïve café – “quoted”")
    pdf.output(DATA / "unicode.pdf")


def columns():
    """Two columns, text that goes up, text in a form, and a page with an image only."""
    page = canvas.Canvas(str(DATA / "columns.pdf"), invariant=True)
    for x in (50, 320):
        text = page.beginText(x, 780)
        for line in range(3):
            text.textLine(f"column at {x}, line {line}")
        page.drawText(text)
    page.saveState()
    page.rotate(90)
    page.drawString(100, -30, "a note in the margin")
    page.restoreState()
    page.beginForm("form")
    page.drawString(50, 400, "text in a form")
    page.endForm()
    page.doForm("form")
    page.showPage()
    page.drawInlineImage(Image.new("1", (8, 8)), 10, 10, 100, 100)
    page.save()


def locked():
    pdf = document(owner_password="owner", user_password="user")
    pdf.cell(text="a secret")
    pdf.output(DATA / "locked.pdf")
    pdf = document(owner_password="owner")
    pdf.cell(text="anyone may read this")
    pdf.output(DATA / "owner.pdf")


report()
unicode()
columns()
locked()
