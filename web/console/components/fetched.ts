import { type ComponentType, createElement, type ReactNode, useEffect, useState } from 'react'

/**
 * A part of the console that is fetched when it is first shown; until then `meanwhile` stands in its place. React's
 * `lazy` would keep that there for 300 ms, however soon the part arrives.
 */
export const fetched = <Props extends object>(
  load: () => Promise<{ default: ComponentType<Props> }>,
): Fetched<Props> => {
  let Part: ComponentType<Props> | undefined
  const Shown: ComponentType<Props & { meanwhile?: ReactNode }> = ({ meanwhile, ...props }) => {
    const [, setIsThere] = useState(Part !== undefined)
    const [failure, setFailure] = useState<{ cause: unknown }>()
    useEffect(() => {
      load().then(
        (loaded) => {
          Part = loaded.default
          setIsThere(true)
        },
        (cause: unknown) => setFailure({ cause }),
      )
    }, [])
    if (failure) throw failure.cause
    return Part ? createElement(Part, props as unknown as Props) : meanwhile
  }
  // What goes wrong is told where it is shown.
  return Object.assign(Shown, { fetch: () => void load().catch(() => {}) })
}

/** `fetch` begins to, for what will be shown in a moment. */
export type Fetched<Props extends object> = ComponentType<Props & { meanwhile?: ReactNode }> & { fetch(): void }
