import type { ReactNode } from 'react'

/** Text that people wrote, in whatever direction it is: what stands beside it keeps its place. */
export const isolated = (content: ReactNode): ReactNode =>
  typeof content === 'string' ? <bdi>{content}</bdi> : content
