import { useEffect, useEffectEvent, useSyncExternalStore } from 'react'

/** A key that does something while what names it is on the page; `?` shows all of them. */
export interface Key {
  /** As people read it: `Ctrl K`, `g then a`, `/`. */
  keys: string
  label: string
  group?: string
}

interface Registered extends Key {
  run(): void
}

let registered: readonly Registered[] = []
const listeners = new Set<() => void>()
const change = (next: readonly Registered[]) => {
  registered = next
  for (const tell of listeners) tell()
}

/** `run` undefined: not now. */
export const useKey = ({ keys, label, group = 'This page' }: Key, run: (() => void) | undefined): void => {
  const now = useEffectEvent(() => run?.())
  const isOn = run !== undefined
  useEffect(() => {
    if (!isOn) return
    const entry = { keys, label, group, run: now }
    change([...registered, entry])
    return () => change(registered.filter((other) => other !== entry))
  }, [keys, label, group, isOn])
}

export const useKeys = (): readonly Key[] =>
  useSyncExternalStore(
    (tell) => {
      listeners.add(tell)
      return () => listeners.delete(tell)
    },
    () => registered,
  )

/** How long the second key of `g then a` may take. */
const sequenceMs = 1_500
let first: { key: string; at: number } | undefined

const nameOf = (event: KeyboardEvent): string => {
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key
  return event.ctrlKey || event.metaKey ? `Ctrl ${key.toUpperCase()}` : key
}

/** Where letters are text. */
const isTyping = (event: KeyboardEvent): boolean => {
  // Also within the editor of code, whose inside the page does not see.
  const [target] = event.composedPath()
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable ||
      /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) ||
      target.closest('[role=menu]') !== null)
  )
}

/** The one listener of the page. */
export const listenForKeys = (): (() => void) => {
  const listen = (event: KeyboardEvent) => {
    if (event.altKey || event.defaultPrevented) return
    const key = nameOf(event)
    const isChord = key.startsWith('Ctrl ')
    if (!isChord && (isTyping(event) || document.querySelector('[role=dialog], [role=alertdialog]'))) return
    const sequence = first && event.timeStamp - first.at < sequenceMs ? `${first.key} then ${key}` : undefined
    first = isChord ? undefined : { key, at: event.timeStamp }
    const found =
      registered.findLast(({ keys }) => keys === sequence) ?? registered.findLast(({ keys }) => keys === key)
    if (!found) return
    event.preventDefault()
    first = undefined
    found.run()
  }
  document.addEventListener('keydown', listen)
  return () => document.removeEventListener('keydown', listen)
}
