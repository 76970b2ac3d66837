import { useEffect, useRef, useState } from 'react'
import { useSearchParams } from 'wouter'
import { Section } from '../../components/page.tsx'
import style from './branding.module.css'

const choices = {
  step: {
    label: 'Page',
    options: {
      sign_in: 'Sign in',
      sign_in_error: 'Wrong password',
      select_account: 'Go on as',
      consent: 'Consent',
      error: 'Error',
      logout: 'Sign out',
      signed_out: 'Signed out',
    },
  },
  locale: {
    label: 'Language',
    options: { en: 'English', de: 'Deutsch', fr: 'Français', es: 'Español', ja: '日本語' },
  },
  theme: { label: 'Theme', options: { light: 'Light', dark: 'Dark' } },
} as const
const names = Object.keys(choices) as (keyof typeof choices)[]

/** Long enough that a page is not made for each letter. */
const typingMs = 250

/** A page with the settings as they are typed, made by the issuer in a frame that can do nothing. */
export const Preview = ({ settings }: { settings: object }) => {
  const [search, setSearch] = useSearchParams()
  const chosen = names.map((name) => [name, search.get(name) ?? Object.keys(choices[name].options)[0]!] as const)
  const asked = JSON.stringify({ ...Object.fromEntries(chosen), settings: JSON.stringify({ experience: settings }) })
  return (
    <div className={style.preview}>
      <Section title="Preview">
        <div className={style.choices}>
          {chosen.map(([name, value]) => (
            <select
              key={name}
              aria-label={choices[name].label}
              value={value}
              onChange={({ target }) =>
                setSearch(
                  (before) => {
                    const next = new URLSearchParams(before)
                    next.set(name, target.value)
                    return next
                  },
                  { replace: true },
                )
              }
            >
              {Object.entries(choices[name].options).map(([option, words]) => (
                <option key={option} value={option}>
                  {words}
                </option>
              ))}
            </select>
          ))}
        </div>
        <Frame asked={asked} />
      </Section>
    </div>
  )
}

/** Each page gets a new frame, which the browser's history knows nothing of; the one before stays until it is there. */
const Frame = ({ asked }: { asked: string }) => {
  const [wanted, setWanted] = useState({ version: 0, asked })
  const [shown, setShown] = useState(0)
  const form = useRef<HTMLFormElement>(null)
  const sent = useRef(-1)
  useEffect(() => {
    if (asked === wanted.asked) return
    const timer = setTimeout(() => setWanted(({ version }) => ({ version: version + 1, asked })), typingMs)
    return () => clearTimeout(timer)
  }, [asked, wanted.asked])
  useEffect(() => {
    if (sent.current === wanted.version) return
    sent.current = wanted.version
    form.current?.submit()
  }, [wanted.version])
  const fields = Object.entries(JSON.parse(wanted.asked) as Record<string, string>)
  return (
    <div className={style.frames}>
      <form ref={form} hidden method="post" action="/console/preview" target={`preview-${wanted.version}`}>
        {fields.map(([name, value]) => (
          <input key={name} type="hidden" name={name} value={value} readOnly />
        ))}
      </form>
      {[...new Set([shown, wanted.version])].map((version) => (
        <iframe
          key={version}
          name={`preview-${version}`}
          title={version === shown ? 'Preview' : 'Next preview'}
          sandbox=""
          data-next={version !== shown || undefined}
          onLoad={() => {
            if (sent.current === version) setShown(version)
          }}
        />
      ))}
    </div>
  )
}
