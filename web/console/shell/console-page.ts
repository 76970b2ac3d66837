import type { QueryClient } from '@tanstack/react-query'
import type { Need, OperationId } from '../api/operations.ts'
import type { Fetched } from '../components/fetched.ts'
import type { PageProps } from '../components/page.tsx'
import type { IconName } from '../design/icon.tsx'

/** What the module of a page may have beside it. */
export interface BesidePage {
  /** Asks what the page will ask first, while it is not shown yet. */
  ask?: (client: QueryClient, params: PageProps['params']) => void
}

/** A page of the console. Those with a group stand in the navigation; the others are reached from there. */
export interface ConsolePage {
  /** Below `/console`, parameters as `:name`. */
  path: string
  title: string
  group?: (typeof groups)[number]
  icon?: IconName
  /** `g` and this letter go there. */
  key?: string
  /** What it cannot be without: whoever may not call it sees why. */
  operation?: OperationId
  /** The same of what is no operation of the Management API: one of these permissions is enough. */
  scopes?: readonly string[]
  /** Other words under which people look for it. */
  words?: string
  /** `meanwhile`: what stands there until it is fetched. */
  Page: Fetched<PageProps, BesidePage>
}

export const needOf = ({ operation, scopes }: Pick<ConsolePage, 'operation' | 'scopes'>): Need | undefined =>
  operation ?? scopes

export const groups = ['', 'Gateway', 'People', 'APIs', 'Webhooks', 'Service'] as const

export type { PageProps }
