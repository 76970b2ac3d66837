import { useEffect, useState } from 'react'
import type { Draft, Field } from './field.ts'

const nothing: Draft = {}

/**
 * Keeps what is typed in this tab until it is saved or given up, so that nothing is lost when the session ends in the
 * middle, or the person signs in again for it. `name` tells the forms of an address apart; a secret is never kept.
 */
export const useDraft = (name: string, initial: Draft = nothing, fields: readonly Field[] = []) => {
  const place = `draft ${location.pathname} ${name}`
  const [kept] = useState(() => read(place))
  const [draft, setDraft] = useState<Draft>(kept ?? initial)
  const secrets = fields.flatMap(({ path, kind }) => (kind === 'password' || kind === 'pairs' ? [path] : [])).join(' ')
  useEffect(() => {
    const isSecret = new Set(secrets.split(' '))
    const rest = Object.entries(draft).filter(([path]) => !isSecret.has(path))
    if (draft === nothing || rest.length === 0) sessionStorage.removeItem(place)
    else sessionStorage.setItem(place, JSON.stringify(Object.fromEntries(rest)))
  }, [place, draft, secrets])
  return {
    draft,
    setDraft,
    /** It was typed before this page was loaded. */
    wasKept: kept !== undefined,
    forget: () => {
      sessionStorage.removeItem(place)
      setDraft(nothing)
    },
  }
}

const read = (place: string): Draft | undefined => {
  try {
    const text = sessionStorage.getItem(place)
    return text === null ? undefined : (JSON.parse(text) as Draft)
  } catch {
    return undefined
  }
}
