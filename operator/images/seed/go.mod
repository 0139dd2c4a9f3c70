module seed

go 1.26.4
