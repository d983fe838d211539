package abi

// Records and variants of `types.wit` as they are in memory: a record has its fields in order, each
// aligned; a variant has a byte for the case, then the cases, which overlap.

type memoryDefinition struct {
	name         span
	title        optional
	description  span
	inputSchema  span
	outputSchema optional
	readOnly     truth
	destructive  truth
	idempotent   truth
	openWorld    truth
	longRunning  truth
}

// The cases of `content`; `resource` is one case.
const (
	caseText uint8 = iota
	caseJSON
	caseBlob
	caseResource
	caseLink
)

type memoryContent struct {
	is uint8
	// The longest case: a resource. The others are at its beginning: see the casts.
	resource memoryResource
}

type memoryBlob struct {
	mediaType, data span
}

type memoryResource struct {
	uri       span
	mediaType optional
	// 0 is a string, 1 is bytes.
	body     uint8
	bodySpan span
}

type memoryLink struct {
	uri, name span
	mediaType optional
}

type memoryFailure struct {
	message    span
	suggestion optional
	transient  truth
	value      optional
}

func (p *pins) definition(it Definition) memoryDefinition {
	return memoryDefinition{
		name:         p.text(it.Name),
		title:        p.optional(it.Title),
		description:  p.text(it.Description),
		inputSchema:  p.text(it.InputSchema),
		outputSchema: p.optional(it.OutputSchema),
		readOnly:     lowerTruth(it.Annotations.ReadOnly),
		destructive:  lowerTruth(it.Annotations.Destructive),
		idempotent:   lowerTruth(it.Annotations.Idempotent),
		openWorld:    lowerTruth(it.Annotations.OpenWorld),
		longRunning:  lowerTruth(it.Annotations.LongRunning),
	}
}

func (it *memoryDefinition) lift() Definition {
	return Definition{
		Name:         it.name.text(),
		Title:        it.title.text(),
		Description:  it.description.text(),
		InputSchema:  it.inputSchema.text(),
		OutputSchema: it.outputSchema.text(),
		Annotations: Annotations{
			ReadOnly:    it.readOnly.pointer(),
			Destructive: it.destructive.pointer(),
			Idempotent:  it.idempotent.pointer(),
			OpenWorld:   it.openWorld.pointer(),
			LongRunning: it.longRunning.pointer(),
		},
	}
}

func (p *pins) failure(it *Failure) memoryFailure {
	return memoryFailure{
		message:    p.text(it.Message),
		suggestion: p.optional(it.Suggestion),
		transient:  lowerTruth(it.Transient),
		value:      p.optional(it.Value),
	}
}

func (it *memoryFailure) lift() *Failure {
	return &Failure{
		Message:    it.message.text(),
		Suggestion: it.suggestion.text(),
		Transient:  it.transient.pointer(),
		Value:      it.value.text(),
	}
}

func (p *pins) content(it Content) (memory memoryContent) {
	switch it.Kind {
	case Text, JSON:
		memory.is = uint8(it.Kind)
		*cast[span](&memory) = p.text(it.Text)
	case Blob:
		memory.is = caseBlob
		*cast[memoryBlob](&memory) = memoryBlob{p.text(it.MediaType), lower(p, it.Data)}
	case ResourceText:
		memory.is = caseResource
		memory.resource = memoryResource{p.text(it.URI), p.optional(it.MediaType), 0, p.text(it.Text)}
	case ResourceBlob:
		memory.is = caseResource
		memory.resource = memoryResource{p.text(it.URI), p.optional(it.MediaType), 1, lower(p, it.Data)}
	case Link:
		memory.is = caseLink
		*cast[memoryLink](&memory) = memoryLink{p.text(it.URI), p.text(it.Name), p.optional(it.MediaType)}
	}
	return memory
}

func (it *memoryContent) lift() Content {
	switch it.is {
	case caseText:
		return Content{Kind: Text, Text: cast[span](it).text()}
	case caseJSON:
		return Content{Kind: JSON, Text: cast[span](it).text()}
	case caseBlob:
		blob := cast[memoryBlob](it)
		return Content{Kind: Blob, MediaType: blob.mediaType.text(), Data: elements[byte](blob.data)}
	case caseResource:
		resource := it.resource
		content := Content{URI: resource.uri.text(), MediaType: resource.mediaType.text()}
		if resource.body == 0 {
			content.Kind, content.Text = ResourceText, resource.bodySpan.text()
		} else {
			content.Kind, content.Data = ResourceBlob, elements[byte](resource.bodySpan)
		}
		return content
	default:
		link := cast[memoryLink](it)
		return Content{Kind: Link, URI: link.uri.text(), Name: link.name.text(), MediaType: link.mediaType.text()}
	}
}

func liftContents(list span) []Content {
	memory := elements[memoryContent](list)
	contents := make([]Content, len(memory))
	for i := range memory {
		contents[i] = memory[i].lift()
	}
	return contents
}
