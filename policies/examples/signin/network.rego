# Administrators sign in from known networks only. Addresses are those that the issuer believes: see TRUSTED_PROXIES.
package surrogate.signin

network_roles := {"admin"}

known_networks := {"192.0.2.0/24", "2001:db8:1::/48"}

deny contains "network_not_allowed" if {
	some role in input.subject.roles
	role in network_roles
	not network_is_known
}

network_is_known if {
	some network in known_networks
	net.cidr_contains(network, input.ip)
}
