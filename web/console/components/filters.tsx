import { useEffect, useId, useRef, useState } from 'react'
import { containing } from '../api/search-pattern.ts'
import { Icon } from '../design/icon.tsx'
import { Button } from './button.tsx'
import style from './filters.module.css'
import { useKey } from './keys.ts'

/** A parameter of the list, under its own name in the address of the page. */
export type Filter =
  | { kind: 'search'; name: string; label: string }
  | { kind: 'choice'; name: string; label: string; options: Readonly<Record<string, string>> }
  | { kind: 'text'; name: string; label: string; suggestions?: readonly string[] }
  /** In ms since the epoch. */
  | { kind: 'time'; name: string; label: string }

/** Long enough that nobody sees a list flicker while typing. */
const typingMs = 180

/** Organizations and what belongs to them are searched by `q`, all else by `search`. */
export const searchFilter = (label: string, name: 'search' | 'q' = 'search'): Filter => ({
  kind: 'search',
  name,
  label,
})

/** What the list is asked for. */
export const queryOf = (filters: readonly Filter[], search: URLSearchParams): Record<string, string> =>
  Object.fromEntries(
    filters.flatMap(({ name }) => {
      const value = search.get(name)
      return value ? [[name, name === 'search' ? containing(value) : value]] : []
    }),
  )

interface FilterBarProps {
  filters: readonly Filter[]
  search: URLSearchParams
  onChange(change: (before: URLSearchParams) => URLSearchParams, options?: { replace?: boolean }): void
}

export const FilterBar = ({ filters, search, onChange }: FilterBarProps) => {
  const set = (name: string, value: string) =>
    onChange(
      (before) => {
        const next = new URLSearchParams(before)
        if (value) next.set(name, value)
        else next.delete(name)
        next.delete('page')
        return next
      },
      { replace: true },
    )
  const isFiltered = filters.some(({ name }) => search.has(name))
  const clear = () => onChange(() => new URLSearchParams())
  return (
    <search className={style.bar}>
      {filters.map((filter) =>
        filter.kind === 'time' ? (
          <TimeFilter key={filter.name} filter={filter} value={search.get(filter.name) ?? ''} onChange={set} />
        ) : filter.kind === 'choice' ? (
          <select
            key={filter.name}
            className={style.select}
            aria-label={filter.label}
            value={search.get(filter.name) ?? ''}
            onChange={(event) => set(filter.name, event.target.value)}
          >
            <option value="">{filter.label}: all</option>
            {Object.entries(filter.options).map(([value, label]) => (
              <option key={value} value={value}>
                {label}
              </option>
            ))}
          </select>
        ) : (
          <TextFilter key={filter.name} filter={filter} value={search.get(filter.name) ?? ''} onChange={set} />
        ),
      )}
      {isFiltered && (
        <Button kind="plain" icon="cross" onPress={clear}>
          Clear
        </Button>
      )}
    </search>
  )
}

interface FilterProps<Kind extends Filter['kind']> {
  filter: Extract<Filter, { kind: Kind }>
  value: string
  onChange(name: string, value: string): void
}

/** What a control for a local time takes and answers. */
const localTime = (ms: number): string =>
  new Date(ms - new Date(ms).getTimezoneOffset() * 60_000).toISOString().slice(0, 16)

const TimeFilter = ({ filter: { name, label }, value, onChange }: FilterProps<'time'>) => (
  <label className={style.time}>
    <span>{label}</span>
    <input
      type="datetime-local"
      value={/^\d{1,15}$/.test(value) ? localTime(Number(value)) : ''}
      onChange={({ target }) => onChange(name, target.value && String(Date.parse(target.value)))}
    />
  </label>
)

const TextFilter = ({ filter, value, onChange }: FilterProps<'text' | 'search'>) => {
  const { kind, name, label } = filter
  const id = useId()
  const input = useRef<HTMLInputElement>(null)
  const [typed, setTyped] = useState(value)
  // Somebody went back, or cleared the filters.
  useEffect(() => setTyped(value), [value])
  useEffect(() => {
    if (typed === value) return
    const timer = setTimeout(() => onChange(name, typed.trim()), typingMs)
    return () => clearTimeout(timer)
  })
  useKey({ keys: '/', label: 'Filter the list' }, kind === 'search' ? () => input.current?.select() : undefined)
  return (
    <label className={style.text}>
      <Icon name="search" size={16} />
      <input
        ref={input}
        type="search"
        dir="auto"
        aria-label={label}
        placeholder={label}
        value={typed}
        maxLength={200}
        list={id}
        onChange={(event) => setTyped(event.target.value)}
        onKeyDown={(event) => event.key === 'Escape' && event.currentTarget.blur()}
      />
      {kind === 'search' && <kbd>/</kbd>}
      {kind === 'text' && (
        <datalist id={id}>
          {filter.suggestions?.map((one) => (
            <option key={one} value={one} />
          ))}
        </datalist>
      )}
    </label>
  )
}
