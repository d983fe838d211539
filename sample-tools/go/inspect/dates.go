package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"cofferdam"
)

const (
	// Longer than any date.
	dateBytesMax = 100
	zonesMax     = 20
	// The order that a model has to pass for an ambiguous date.
	dayFirst   = "day-first"
	monthFirst = "month-first"
)

// DateInput contains the arguments of inspect_date.
type DateInput struct {
	Date  string   `json:"date" description:"The date or time in any usual form: 2026-03-01T12:00Z, 1 March 2026, Sun, 01 Mar 2026 12:00:00 +0100, 1772366400, now."`
	To    *string  `json:"to" description:"Another one, to say how far it is from the first to it."`
	Zone  string   `json:"zone" description:"The IANA time zone of what says none itself." default:"UTC"`
	Zones []string `json:"zones" description:"IANA time zones to show the moment in, for example Europe/Berlin; at most 20." default:"[]"`
	Order *string  `json:"order" description:"How to read 03/04/2026; only needed for such dates." enum:"day-first,month-first"`
}

// DateReport is the result of inspect_date.
type DateReport struct {
	UTC       string `json:"utc"`
	Unix      int64  `json:"unix"`
	Weekday   string `json:"weekday"`
	ISOWeek   string `json:"iso_week"`
	DayOfYear int    `json:"day_of_year"`
	LeapYear  bool   `json:"leap_year"`
	// ReadAs is the detected form.
	ReadAs     string            `json:"read_as"`
	Zones      map[string]string `json:"zones"`
	Difference *Difference       `json:"difference,omitempty"`
}

// Difference is the time from the first date to the second.
type Difference struct {
	Seconds int64 `json:"seconds"`
	// Days are complete days of 24 hours.
	Days int64  `json:"days"`
	Text string `json:"text"`
}

// moment is a time and the form in which it was written.
type moment struct {
	time.Time
	form string
}

func inspectDate(_ *cofferdam.Call, in DateInput) (*DateReport, error) {
	zone, err := zoneOf(in.Zone)
	if err != nil {
		return nil, err
	}
	order := ""
	if in.Order != nil {
		order = *in.Order
	}
	found, err := parseMoment(in.Date, zone, order)
	if err != nil {
		return nil, err
	}
	year, week := found.ISOWeek()
	report := &DateReport{
		UTC:       found.UTC().Format(time.RFC3339Nano),
		Unix:      found.Unix(),
		Weekday:   found.Weekday().String(),
		ISOWeek:   fmt.Sprintf("%d-W%02d", year, week),
		DayOfYear: found.YearDay(),
		LeapYear:  time.Date(found.Year(), 12, 31, 0, 0, 0, 0, time.UTC).YearDay() == 366,
		ReadAs:    found.form,
	}
	if report.Zones, err = inZones(found.Time, in.Zones); err != nil {
		return nil, err
	}
	if in.To != nil {
		other, err := parseMoment(*in.To, zone, order)
		if err != nil {
			return nil, err
		}
		report.Difference = difference(found.Time, other.Time)
	}
	return report, nil
}

func inZones(moment time.Time, names []string) (map[string]string, error) {
	if len(names) > zonesMax {
		return nil, cofferdam.Failf("%d time zones are too many", len(names)).Suggest("pass %d or less", zonesMax)
	}
	shown := map[string]string{}
	for _, name := range names {
		zone, err := zoneOf(name)
		if err != nil {
			return nil, err
		}
		shown[name] = moment.In(zone).Format("2006-01-02T15:04:05-07:00 MST")
	}
	return shown, nil
}

func zoneOf(name string) (*time.Location, error) {
	zone, err := time.LoadLocation(name)
	if err != nil || name == "" || name == "Local" {
		return nil, cofferdam.Failf("there is no time zone `%s`", name).Suggest("pass an IANA name such as Europe/Berlin, America/New_York or UTC")
	}
	return zone, nil
}

func difference(from, to time.Time) *Difference {
	seconds := to.Unix() - from.Unix()
	left, sign := seconds, ""
	if seconds < 0 {
		left, sign = -seconds, "-"
	}
	text := fmt.Sprintf("%s%d days, %d hours, %d minutes, %d seconds", sign, left/86400, left/3600%24, left/60%60, left%60)
	return &Difference{Seconds: seconds, Days: seconds / 86400, Text: text}
}

// forms lists the forms in the order in which they are tried, each with its name. `,` and double
// spaces are removed before.
var forms = []struct{ layout, name string }{
	{time.RFC3339Nano, "RFC 3339"},
	{"2006-01-02T15:04Z07:00", "ISO 8601"},
	{"2006-01-02T15:04:05.999999999", "ISO 8601 without a zone"},
	{"2006-01-02T15:04", "ISO 8601 without a zone"},
	{"20060102T150405Z", "ISO 8601, basic"},
	{"2006-01-02 15:04:05.999999999 -0700 MST", "Go"},
	{"2006-01-02 15:04:05.999999999Z07:00", "SQL"},
	{"2006-01-02 15:04:05.999999999 -0700", "SQL"},
	{"2006-01-02 15:04:05.999999999", "SQL without a zone"},
	{"2006-01-02 15:04", "SQL without a zone"},
	{time.DateOnly, "ISO 8601 date"},
	{"Mon 2 Jan 2006 15:04:05 -0700", "RFC 5322"},
	{"2 Jan 2006 15:04:05 -0700", "RFC 5322"},
	{"Mon 2 Jan 2006 15:04:05 GMT", "HTTP"},
	{"Mon Jan 2 15:04:05 2006", "ctime"},
	{"02/Jan/2006:15:04:05 -0700", "web server log"},
	{"2 January 2006 15:04", "day and month in words"},
	{"2 January 2006", "day and month in words"},
	{"2 Jan 2006", "day and month in words"},
	{"Monday 2 January 2006", "day and month in words"},
	{"January 2 2006 3:04 PM", "month in words"},
	{"January 2 2006", "month in words"},
	{"Jan 2 2006", "month in words"},
	{"2.1.2006 15:04", "day.month.year"},
	{"2.1.2006", "day.month.year"},
	{"2006/1/2 15:04:05", "year/month/day"},
	{"2006/1/2", "year/month/day"},
}

func parseMoment(text string, zone *time.Location, order string) (moment, error) {
	if len(text) > dateBytesMax {
		return moment{}, cofferdam.Failf("a date of %d bytes is too long", len(text)).Suggest("pass one date or time")
	}
	text = strings.Join(strings.Fields(strings.ReplaceAll(text, ",", " ")), " ")
	if strings.EqualFold(text, "now") {
		return moment{time.Now().In(zone), "now"}, nil
	}
	if found, is := unixTime(text); is {
		return found, nil
	}
	for _, form := range forms {
		if found, err := time.ParseInLocation(form.layout, text, zone); err == nil {
			return moment{found, form.name}, nil
		}
	}
	return slashed(text, zone, order)
}

// unixTime reads seconds, milliseconds or nanoseconds, by the number of digits; a year has four.
func unixTime(text string) (moment, bool) {
	number, err := strconv.ParseInt(text, 10, 64)
	switch digits := len(strings.TrimPrefix(text, "-")); {
	case err != nil || digits < 9:
		return moment{}, false
	case digits <= 11:
		return moment{time.Unix(number, 0).UTC(), "Unix seconds"}, true
	case digits <= 14:
		return moment{time.UnixMilli(number).UTC(), "Unix milliseconds"}, true
	case digits <= 17:
		return moment{time.UnixMicro(number).UTC(), "Unix microseconds"}, true
	default:
		return moment{time.Unix(0, number).UTC(), "Unix nanoseconds"}, true
	}
}

// slashed reads 03/04/2026. An ambiguous date needs the order.
func slashed(text string, zone *time.Location, order string) (moment, error) {
	var ways []moment
	for _, way := range []struct{ order, date string }{{dayFirst, "2/1/2006"}, {monthFirst, "1/2/2006"}} {
		for _, clock := range []string{"", " 15:04", " 15:04:05", " 3:04 PM"} {
			found, err := time.ParseInLocation(way.date+clock, text, zone)
			if err == nil && (order == "" || order == way.order) {
				ways = append(ways, moment{found, way.order})
			}
		}
	}
	switch {
	case len(ways) == 1 || len(ways) == 2 && ways[0].Equal(ways[1].Time):
		return ways[0], nil
	case len(ways) > 1:
		return moment{}, cofferdam.Failf("`%s` is %s or %s", text, ways[0].Format("2 January"), ways[1].Format("2 January")).
			Suggest("pass `order`, or write the date as %s", ways[0].Format(time.DateOnly))
	default:
		return moment{}, cofferdam.Failf("`%s` is not a date in a known format", text).Suggest("write it as 2026-03-01 or 2026-03-01T12:00:00Z")
	}
}
