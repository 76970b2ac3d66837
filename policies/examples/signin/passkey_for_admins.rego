# Administrators sign in with a passkey: nothing that could be given away to a false page is enough.
package surrogate.signin

require contains "phr" if {
	input.stage != "prove"
	"admin" in input.subject.roles
}
