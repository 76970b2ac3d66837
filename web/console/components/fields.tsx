import { type ReactNode, useContext, useId } from 'react'
import type { Issue } from '../api/problem.ts'
import { Button, RefusalContext } from './button.tsx'
import { fetched } from './fetched.ts'
import type { Draft, Field } from './field.ts'
import style from './fields.module.css'
import { Loading } from './page.tsx'
import { Pairs } from './pairs.tsx'
import { PictureControl } from './picture-control.tsx'

/** It weighs more than a page. */
const CodeEditor = fetched(() => import('./code-editor.tsx'))

interface FieldsProps {
  fields: readonly Field[]
  values: Draft
  issues?: readonly Issue[]
  onChange(path: string, value: unknown): void
}

export const Fields = ({ fields, values, issues = [], onChange }: FieldsProps) => (
  <div className={style.fields}>
    {fields.map((field) => (
      <FieldRow
        key={field.path}
        field={field}
        value={values[field.path]}
        issues={issues.filter(({ path }) => path === field.path || path.startsWith(`${field.path}.`))}
        onChange={(value) => onChange(field.path, value)}
      />
    ))}
  </div>
)

interface FieldRowProps {
  field: Field
  value: unknown
  issues: readonly Issue[]
  onChange(value: unknown): void
}

const FieldRow = ({ field, value, issues, onChange }: FieldRowProps) => {
  const id = useId()
  const isRefused = useContext(RefusalContext) !== undefined
  const { label, hint, kind = 'text', isRequired = false, isCode, placeholder, autoComplete } = field
  const described = [hint && `${id}-hint`, issues.length > 0 && `${id}-issue`].filter(Boolean).join(' ')
  const common = {
    id,
    name: field.path,
    ...(described && { 'aria-describedby': described }),
    ...(issues.length > 0 && { 'aria-invalid': true }),
    ...(isCode && { className: style.code }),
    ...(placeholder && { placeholder }),
    ...(autoComplete && { autoComplete }),
    spellCheck: !isCode,
    dir: isCode ? 'ltr' : 'auto',
    required: isRequired,
    readOnly: isRefused,
  }
  const text = value == null ? '' : String(value)
  const isGroup = kind === 'list' || kind === 'several' || kind === 'code' || kind === 'pairs'
  const controls: Record<NonNullable<Field['kind']>, () => ReactNode> = {
    text: () => <input {...common} value={text} onChange={(event) => onChange(event.target.value)} />,
    password: () => (
      <input {...common} type="password" value={text} onChange={(event) => onChange(event.target.value)} />
    ),
    lines: () => (
      <textarea {...common} rows={isCode ? 8 : 3} value={text} onChange={(event) => onChange(event.target.value)} />
    ),
    number: () => (
      <input
        {...common}
        inputMode="numeric"
        value={text}
        onChange={({ target }) => onChange(/^\d+$/.test(target.value) ? Number(target.value) : target.value)}
      />
    ),
    list: () => <ListControl common={common} label={label} values={(value as string[]) ?? []} onChange={onChange} />,
    choice: () => (
      <select {...common} disabled={isRefused} value={text} onChange={(event) => onChange(event.target.value)}>
        {Object.entries(field.options ?? {}).map(([option, words]) => (
          <option key={option} value={option}>
            {words}
          </option>
        ))}
      </select>
    ),
    several: () => (
      <div className={style.several}>
        {Object.entries(field.options ?? {}).map(([option, words]) => (
          <label key={option}>
            <input
              type="checkbox"
              name={field.path}
              disabled={isRefused}
              checked={chosenOf(value).includes(option)}
              onChange={({ target }) => onChange(withOption(field, value, option, target.checked))}
            />
            {words}
          </label>
        ))}
      </div>
    ),
    color: () => (
      <div className={style.line}>
        <input
          type="color"
          aria-label={`Pick: ${label}`}
          disabled={isRefused}
          value={/^#[\da-f]{6}$/i.test(text) ? text : text.replace(/^#(.)(.)(.)$/, '#$1$1$2$2$3$3')}
          onChange={(event) => onChange(event.target.value)}
        />
        <input {...common} maxLength={7} value={text} onChange={(event) => onChange(event.target.value)} />
      </div>
    ),
    picture: () => <PictureControl common={common} label={label} value={text} onChange={onChange} />,
    code: () => (
      <CodeEditor
        {...{ label, value: text, isReadOnly: isRefused || field.isFixed === true, onChange }}
        {...{ suggest: field.suggest, language: field.language }}
        meanwhile={<Loading lines={8} />}
      />
    ),
    pairs: () => (
      <Pairs {...{ label, isReadOnly: isRefused, onChange }} values={(value as Record<string, string>) ?? {}} />
    ),
    flag: () => (
      <input
        {...common}
        type="checkbox"
        role="switch"
        aria-checked={value === true}
        disabled={isRefused}
        checked={value === true}
        onChange={(event) => onChange(event.target.checked)}
      />
    ),
  }
  return (
    <div
      className={kind === 'flag' ? style.flag : style.field}
      {...(isGroup && { role: 'group', 'aria-labelledby': `${id}-label` })}
      data-wide={kind === 'code' || undefined}
    >
      {isGroup ? (
        <span id={`${id}-label`} className={style.label}>
          {label}
        </span>
      ) : (
        <label htmlFor={id} className={style.label}>
          {label}
          {!isRequired && kind !== 'flag' && kind !== 'choice' && <span className={style.optional}> (optional)</span>}
        </label>
      )}
      {hint && (
        <p id={`${id}-hint`} className={style.hint}>
          {hint}
        </p>
      )}
      {issues.length > 0 && (
        <p id={`${id}-issue`} className={style.issue}>
          {issues.map(({ message }) => message).join('; ')}
        </p>
      )}
      {controls[kind]()}
    </div>
  )
}

const chosenOf = (value: unknown): readonly string[] => (Array.isArray(value) ? value : [])

/** In the order of the options, so that what is the same looks the same. */
const withOption = ({ options = {} }: Field, value: unknown, option: string, isChosen: boolean): string[] =>
  Object.keys(options).filter((name) => (name === option ? isChosen : chosenOf(value).includes(name)))

interface ListControlProps {
  common: { id: string; readOnly: boolean; name: string }
  label: string
  values: readonly string[]
  onChange(values: string[]): void
}

/** One line more than there are, to type the next one. */
const ListControl = ({ common, label, values, onChange }: ListControlProps) => {
  const { readOnly } = common
  const lines = readOnly ? values : [...values, '']
  const set = (index: number, text: string) =>
    onChange(lines.map((line, place) => (place === index ? text : line)).filter((line, place) => line || place < index))
  return (
    <div className={style.lines}>
      {lines.map((line, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a line is its place
        <div key={index} className={style.line}>
          <input
            {...common}
            id={`${common.id}-${index}`}
            required={false}
            aria-label={index < values.length ? `${label} ${index + 1}` : `Another: ${label}`}
            value={line}
            onChange={(event) => set(index, event.target.value)}
          />
          {index < values.length && !readOnly && (
            <Button
              kind="plain"
              icon="cross"
              label={`Remove ${line || `${label} ${index + 1}`}`}
              onPress={() => onChange(values.filter((_, place) => place !== index))}
            />
          )}
        </div>
      ))}
    </div>
  )
}
