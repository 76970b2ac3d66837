/** Permissions of which one lets somebody look into gateways. */
export const inspecting = ['read', 'all'] as const
