package bench

import (
	"bytes"
	"fmt"
	"image/color"
	"os"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

const (
	plotWidth  = 16 * vg.Centimeter
	plotHeight = 9 * vg.Centimeter
)

// series is one line of a plot.
type series struct {
	name   string
	points plotter.XYs
	dashed bool
}

// colours can be told apart by people who see few of them.
var colours = []color.RGBA{
	{R: 0, G: 114, B: 178, A: 255}, {R: 230, G: 159, B: 0, A: 255}, {R: 0, G: 158, B: 115, A: 255}, {R: 204, G: 121, B: 167, A: 255}, {R: 90, G: 90, B: 90, A: 255},
}

// drawLines writes lines as SVG. A logarithmic scale needs positive values.
func drawLines(path, title, x, y string, logarithmic bool, lines []series) error {
	p := newPlot(title, x, y)
	if logarithmic {
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	} else {
		p.Y.Min = 0
	}
	p.X.Min = 0
	for i, l := range lines {
		line, dots, err := plotter.NewLinePoints(l.points)
		if err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
		line.Color, dots.Color = colours[i%len(colours)], colours[i%len(colours)]
		line.Width, dots.Shape, dots.Radius = vg.Points(1.5), draw.CircleGlyph{}, vg.Points(2)
		if l.dashed {
			line.Dashes = []vg.Length{vg.Points(4), vg.Points(3)}
		}
		p.Add(line, dots)
		p.Legend.Add(l.name, line, dots)
	}
	p.X.Max *= 1.3 // room for the legend
	return write(p, path)
}

// bar is one bar of a plot.
type bar struct {
	name  string
	value float64
}

// drawBars writes bars as SVG, the first one at the top.
func drawBars(path, title, x string, bars []bar) error {
	p := newPlot(title, x, "")
	var values plotter.Values
	var names []string
	for _, b := range slices.Backward(bars) {
		values, names = append(values, b.value), append(names, b.name)
	}
	chart, err := plotter.NewBarChart(values, vg.Points(16))
	if err != nil {
		return err
	}
	chart.Horizontal, chart.Color, chart.LineStyle.Width = true, colours[0], 0
	p.Add(chart)
	p.NominalY(names...)
	p.X.Min = 0
	return write(p, path)
}

func newPlot(title, x, y string) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.Title.Padding, p.Legend.Top = vg.Points(6), true
	for _, style := range []*text.Style{&p.Title.TextStyle, &p.X.Label.TextStyle, &p.Y.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label, &p.Legend.TextStyle} {
		style.Font.Variant = "Sans"
	}
	p.BackgroundColor = color.White
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = color.Gray{Y: 225}, color.Gray{Y: 225}
	p.Add(grid)
	return p
}

// write writes a plot as SVG. It was laid out in a font that readers may lack;
// others are as wide.
func write(p *plot.Plot, path string) error {
	canvas := vgsvg.New(plotWidth, plotHeight)
	p.Draw(draw.New(canvas))
	var file bytes.Buffer
	if _, err := canvas.WriteTo(&file); err != nil {
		return err
	}
	const laidOut = "font-family:Liberation Sans"
	svg := bytes.ReplaceAll(file.Bytes(), []byte(laidOut), []byte(laidOut+",Arial,Helvetica,sans-serif"))
	return os.WriteFile(path, svg, 0o644)
}
