/** What Go calls a rune: the code point of a text's first character, 0 of an empty text. */
export const runeOf = (text: string): number => text.codePointAt(0) ?? 0
