import type { HostBuiltin } from './index.ts'

/** A string, or an array or set of them; anything else is a type error, which Rego sees as undefined. */
const strings = (value: unknown): string[] | undefined => {
  const list = Array.isArray(value) ? value : [value]
  return list.every((item) => typeof item === 'string') ? list : undefined
}

const anyPair =
  (matches: (text: string, part: string) => boolean): HostBuiltin =>
  ([search, base]) => {
    const texts = strings(search)
    const parts = strings(base)
    if (!texts || !parts) return undefined
    return texts.some((text) => parts.some((part) => matches(text, part)))
  }

export const stringBuiltins: Record<string, HostBuiltin> = {
  'strings.any_prefix_match': anyPair((text, part) => text.startsWith(part)),
  'strings.any_suffix_match': anyPair((text, part) => text.endsWith(part)),
}
