import { useEffect, useRef, useState } from 'react'
import { type Draft, type Field, isSecret } from './field.ts'

const nothing: Draft = {}

/**
 * Keeps what is typed in this tab until it is saved or given up, so that nothing is lost when the session ends in the
 * middle, or the person signs in again for it. `name` tells the forms of an address apart; a secret is never kept.
 */
export const useDraft = (name: string, initial: Draft = nothing) => {
  const place = `draft ${location.pathname} ${name}`
  const [kept] = useState(() => read(place))
  const [draft, setDraft] = useState<Draft>(kept ?? initial)
  const fields = useRef<readonly Field[]>([])
  useEffect(() => {
    const secrets = fields.current.filter(isSecret).map(({ path }) => path)
    const safe = Object.entries(draft).filter(([path]) => !secrets.includes(path))
    if (safe.length === 0) sessionStorage.removeItem(place)
    else sessionStorage.setItem(place, JSON.stringify(Object.fromEntries(safe)))
  }, [place, draft])
  return {
    draft,
    /** What the draft is of: it says which values are secret. */
    isOf: (current: readonly Field[]) => {
      fields.current = current
    },
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
