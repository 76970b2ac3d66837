import { useEffect, useState } from 'react'

/** What is left of its time, by the second. */
export const TimeLeft = ({ until }: { until: number }) => {
  const [now, setNow] = useState(Date.now)
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1_000)
    return () => clearInterval(timer)
  }, [])
  const seconds = Math.max(0, Math.ceil((until - now) / 1_000))
  const [minutes, rest] = [Math.floor(seconds / 60), seconds % 60]
  return (
    <span role="timer">
      {minutes}:{String(rest).padStart(2, '0')} left
    </span>
  )
}
