import style from './select.module.css'

interface SelectProps {
  label: string
  value: string | undefined
  options: Readonly<Record<string, string>>
  onChange(value: string): void
}

/** A choice that changes what is shown, not what is stored. */
export const Select = ({ label, value, options, onChange }: SelectProps) => (
  <label className={style.select}>
    <span>{label}</span>
    <select value={value} onChange={(event) => onChange(event.target.value)}>
      {Object.entries(options).map(([option, words]) => (
        <option key={option} value={option}>
          {words}
        </option>
      ))}
    </select>
  </label>
)
