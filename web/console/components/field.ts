import type { ReactNode } from 'react'

/** What was typed and not saved yet, by the path of its member. */
export type Draft = Readonly<Record<string, unknown>>

/** A member of a record as people see and change it. */
export interface Field {
  /** In the record: `oidcClientMetadata.redirectUris`. */
  path: string
  label: string
  hint?: ReactNode
  /**
   * `list`: texts, each in a line of its own. `several`: those of `options` that are chosen. `picture`: the address of
   * one, which can be uploaded. `code`: JavaScript. `pairs`: names and secret values. Default `text`.
   */
  kind?:
    | 'text'
    | 'lines'
    | 'list'
    | 'number'
    | 'choice'
    | 'several'
    | 'flag'
    | 'password'
    | 'color'
    | 'picture'
    | 'code'
    | 'pairs'
  options?: Readonly<Record<string, string>>
  isRequired?: boolean
  /** Kept by nobody until it is sent, and not shown in a difference; every `password` and `pairs` is one. */
  isSecret?: boolean
  /** What an empty field is. Default: left out when something is made, null in a change. */
  empty?: null | '' | undefined
  placeholder?: string
  /** Of code: it is only read. */
  isFixed?: boolean
  /** For what is read letter by letter. */
  isCode?: boolean
  autoComplete?: string
  /** Of code. Default JavaScript. */
  language?: CodeLanguage
  /** Of code: what may follow what stands before a dot. */
  suggest?(before: string): readonly Suggestion[]
}

export type CodeLanguage = 'javascript' | 'rego' | 'json'

/** A member that code may name. */
export interface Suggestion {
  name: string
  type: string
  says?: string
}

export const isSecret = ({ kind, isSecret: isMarked }: Field): boolean =>
  kind === 'password' || kind === 'pairs' || isMarked === true
