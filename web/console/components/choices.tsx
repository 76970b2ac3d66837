import type { ReactNode } from 'react'
import style from './assignments.module.css'
import { isolated } from './isolated.tsx'

interface ChoicesProps {
  rows: readonly { key: string; name: string; detail?: ReactNode }[]
  chosen: readonly string[]
  onChange(chosen: string[]): void
}

/** Some of a list. */
export const Choices = ({ rows, chosen, onChange }: ChoicesProps) => (
  <ul className={style.options}>
    {rows.map(({ key, name, detail }) => (
      <li key={key}>
        <label>
          <input
            type="checkbox"
            checked={chosen.includes(key)}
            onChange={({ target }) =>
              onChange(target.checked ? [...chosen, key] : chosen.filter((other) => other !== key))
            }
          />
          <span>
            <b>{isolated(name)}</b>
            <span>{isolated(detail)}</span>
          </span>
        </label>
      </li>
    ))}
  </ul>
)
