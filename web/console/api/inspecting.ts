/** Permissions of which one lets somebody look into gateways. */
export const inspecting = ['read', 'all'] as const
/** The same for what makes a gateway work, such as trying rules. */
export const evaluating = ['rbac', 'all'] as const
/** And for what changes one. */
export const editing = ['all'] as const
