/** SQL's LIKE, as the searches of the Management API are: rows that have the text in them. */
export const containing = (text: string): string => `%${text.replaceAll(/[\\%_]/g, '\\$&')}%`
