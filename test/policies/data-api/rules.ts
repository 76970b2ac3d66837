/** Rules with the forms of OPA's own tests of its server: partial ones, undefined ones, contradictions, defaults. */
export const rules = {
  'testmod.rego': `package testmod

# METADATA
# entrypoint: true
g if {
	input.req1.a[0] == 1
	input.req2.b[_] == 1
}

# METADATA
# entrypoint: true
gt1 if input.req1 > 1

# METADATA
# entrypoint: true
arr := [1, 2, 3, 4]

# METADATA
# entrypoint: true
undef if input.never

# METADATA
# entrypoint: true
default p := false

p if {
	some x in q
	not x in r
}

q contains 1 if input.x == 1

q contains 2 if input.y == 2

r contains 1 if input.z == 3

# METADATA
# entrypoint: true
conflict := true if input.a

conflict := false if input.b

# METADATA
# entrypoint: true
decision := {"allow": input.user == "alice", "user": input.user, "n": {"x/y": 1, "": 2}, "list": ["a", "b"]} if input.user

# METADATA
# entrypoint: true
whole := input

# METADATA
# entrypoint: true
roles := {"admin", "user"}

# METADATA
# entrypoint: true
failing := to_number(input.text)

# METADATA
# entrypoint: true
long := numbers.range(1, 1000)

# METADATA
# entrypoint: true
work := count([1 | some _ in numbers.range(1, input.n); some _ in numbers.range(1, 1000)])

not_asked := 1
`,
  'main.rego': `package system

# METADATA
# entrypoint: true
main := {"got": input} if not input.hide
`,
  'health.rego': `package system.health

# METADATA
# entrypoint: true
live := true

# METADATA
# entrypoint: true
ready if input.plugins_ready

# METADATA
# entrypoint: true
odd := 1

# METADATA
# entrypoint: true
never if input.never
`,
  'a/b/deep.rego': `package a.b

# METADATA
# entrypoint: true
decision := {"allow": true}
`,
}
