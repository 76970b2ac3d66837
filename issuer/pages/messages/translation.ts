import type { en } from './en.ts'

/** The names in braces of a message. */
export type Names<Text extends string> = Text extends `${string}{${infer Name}}${infer Rest}`
  ? Name | Names<Rest>
  : never

export type MessageKey = keyof typeof en

/** The messages that have exactly these names in braces. */
export type MessageNames<Key extends MessageKey> = Names<(typeof en)[Key]>

type SameNames<Messages extends Record<MessageKey, string>> = {
  [Key in MessageKey]: [Names<Messages[Key]>, MessageNames<Key>] extends [MessageNames<Key>, Names<Messages[Key]>]
    ? Messages[Key]
    : `has other names in braces than in English`
}

export type Messages = Readonly<Record<MessageKey, string>>

/** A catalogue in another language. What is missing, or names something else in braces, does not compile. */
export const translation = <const Texts extends Messages>(
  texts: Texts & SameNames<Texts> & Readonly<Record<Exclude<keyof Texts, MessageKey>, never>>,
): Messages => texts
