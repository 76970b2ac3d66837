/** Where the pages of an interaction are. */
export const interactionPath = (id: string): string => `/sign-in/${id}`
