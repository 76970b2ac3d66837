import { useEffect, useState } from 'react'

interface Leaving {
  stay(): void
  leave(): void
}

/**
 * While something is not saved, going to another page asks first, also by the browser's own buttons. Answers where the
 * person is about to go; undefined while they stay. `leaving` is told before they go.
 */
export const useLeaveGuard = (isUnsaved: boolean, leaving: () => void): Leaving | undefined => {
  const [asked, setAsked] = useState<NavigateEvent>()
  useEffect(() => {
    if (!isUnsaved) return
    const ask = (event: NavigateEvent) => {
      const to = new URL(event.destination.url)
      const isElsewhere = to.origin === location.origin && to.pathname !== location.pathname
      // Whoever signs in comes back, and what they typed is still there.
      if (!isElsewhere || !event.cancelable || to.pathname === '/console/sign-in') return
      event.preventDefault()
      setAsked(event)
    }
    // Where the browser lacks it, what was typed is offered again when the person comes back.
    globalThis.navigation?.addEventListener('navigate', ask)
    return () => globalThis.navigation?.removeEventListener('navigate', ask)
  }, [isUnsaved])
  if (!asked) return undefined
  return {
    stay: () => setAsked(undefined),
    leave: () => {
      leaving()
      setAsked(undefined)
      const { key, url } = asked.destination
      // After this turn, in which the guard goes.
      setTimeout(() => {
        if (asked.navigationType === 'traverse') globalThis.navigation.traverseTo(key)
        else location.assign(url)
      })
    },
  }
}
