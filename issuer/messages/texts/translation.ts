import type { en } from './en.ts'

type Names<Text extends string> = Text extends `${string}{${infer Name}}${infer Rest}` ? Name | Names<Rest> : never

export type TextKey = keyof typeof en
export type Texts = Readonly<Record<TextKey, string>>

/** The names in braces of a text. */
export type TextNames<Key extends TextKey> = Names<(typeof en)[Key]>

type SameNames<Given extends Record<TextKey, string>> = {
  [Key in TextKey]: [Names<Given[Key]>, TextNames<Key>] extends [TextNames<Key>, Names<Given[Key]>]
    ? Given[Key]
    : `has other names in braces than in English`
}

/** A catalogue in another language. What is missing, or names something else in braces, does not compile. */
export const translation = <const Given extends Texts>(
  texts: Given & SameNames<Given> & Readonly<Record<Exclude<keyof Given, TextKey>, never>>,
): Texts => texts
