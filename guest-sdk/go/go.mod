module cofferdam

go 1.24
