import { type ComponentType, createElement, type ReactNode, useEffect, useState } from 'react'

interface Module<Props extends object> {
  default: ComponentType<Props>
}

/** A part of the console that is fetched when it is first shown; until then `meanwhile` stands in its place. */
export type Fetched<Props extends object, More extends object = object> = ComponentType<
  Props & { meanwhile?: ReactNode }
> & {
  /** Fetches it for what will be shown in a moment. */
  fetch(): Promise<Module<Props> & More>
}

/** React's `lazy` would keep `meanwhile` there for 300 ms, however soon the part arrives. */
export const fetched = <Props extends object, More extends object = object>(
  fetch: () => Promise<Module<Props> & More>,
): Fetched<Props, More> => {
  let Part: ComponentType<Props> | undefined
  const Shown: ComponentType<Props & { meanwhile?: ReactNode }> = ({ meanwhile, ...props }) => {
    const [, setIsThere] = useState(Part !== undefined)
    const [failure, setFailure] = useState<{ cause: unknown }>()
    useEffect(() => {
      fetch().then(
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
  return Object.assign(Shown, { fetch })
}
