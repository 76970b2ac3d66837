import { Button } from './button.tsx'
import style from './fields.module.css'

interface PairsProps {
  label: string
  values: Readonly<Record<string, string>>
  isReadOnly: boolean
  onChange(values: Record<string, string>): void
}

/** Names and values; a line more than there are, for the next one. */
export const Pairs = ({ label, values, isReadOnly, onChange }: PairsProps) => {
  const entries = Object.entries(values)
  const lines = isReadOnly || '' in values ? entries : [...entries, ['', ''] as const]
  const set = (index: number, name: string, value: string) =>
    onChange(
      Object.fromEntries(
        lines.map((line, place) => (place === index ? [name, value] : line)).filter(([one, text]) => one || text),
      ),
    )
  return (
    <div className={style.lines}>
      {lines.map(([name, value], index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a line is its place
        <div key={index} className={style.line}>
          <input
            aria-label={`${label}: name ${index + 1}`}
            placeholder="NAME"
            readOnly={isReadOnly}
            spellCheck={false}
            value={name}
            onChange={({ target }) => set(index, target.value, value)}
          />
          <input
            aria-label={`${label}: value ${index + 1}`}
            placeholder="value"
            autoComplete="off"
            readOnly={isReadOnly}
            spellCheck={false}
            value={value}
            onChange={({ target }) => set(index, name, target.value)}
          />
          {(name || value) && !isReadOnly && (
            <Button
              kind="plain"
              icon="cross"
              label={`Remove ${name}`}
              onPress={() => onChange(Object.fromEntries(entries.filter(([one]) => one !== name)))}
            />
          )}
        </div>
      ))}
    </div>
  )
}
