import { useEffect, useState } from 'react'

const units = [
  ['year', 31_536_000],
  ['month', 2_592_000],
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
] as const

const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' })
const exact = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'medium' })

/** `3 hours ago`, `in 2 days`; within a minute `just now`. */
export const relativeTime = (at: number, now: number): string => {
  const seconds = Math.round((at - now) / 1_000)
  const [unit, size] = units.find(([, length]) => Math.abs(seconds) >= length) ?? [undefined, 1]
  return unit ? relative.format(Math.trunc(seconds / size), unit) : 'just now'
}

export const exactTime = (at: number): string => exact.format(at)

/** A time as people say it, with the exact one beside it. `at` in milliseconds since the epoch. */
export const RelativeTime = ({ at, never = 'never' }: { at: number | null | undefined; never?: string }) => {
  const now = useNow()
  if (at == null) return <span>{never}</span>
  return (
    <time dateTime={new Date(at).toISOString()} title={exactTime(at)}>
      {relativeTime(at, now)}
    </time>
  )
}

/** Both, where there is room. */
export const FullTime = ({ at }: { at: number }) => (
  <>
    {exactTime(at)} (<RelativeTime at={at} />)
  </>
)

const useNow = (): number => {
  const [now, setNow] = useState(Date.now)
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 30_000)
    return () => clearInterval(timer)
  }, [])
  return now
}
