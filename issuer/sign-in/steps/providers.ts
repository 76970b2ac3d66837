import { onlyValue } from '../../base/read-form.ts'
import type { OfferedConnector } from '../../connectors/federation.ts'
import type { PageProvider, ProviderNotice } from '../../pages/index.ts'
import type { StepAnswer, StepView } from './step.ts'

/** The buttons of identity providers, which several steps have, and what came of pressing one. */

/** A form, whatever its page shows again. */
type AnyAnswer = Omit<StepAnswer<never>, 'again'>

/** In the order of the settings. */
export const providersOf = async ({
  operations,
  interaction,
}: Pick<StepView, 'operations' | 'interaction'>): Promise<PageProvider[]> =>
  (await operations.federated.offered(interaction)).map(({ id, name, logo, darkLogo }) => ({
    id,
    name,
    logo,
    darkLogo,
  }))

export const providerNoticeOf = ({ situation: { state } }: Pick<StepView, 'situation'>): ProviderNotice | undefined =>
  state.federation ?? undefined

/** Goes to a provider. What stands in the way is told by the page that is shown next; but for too many tries. */
export const goToProvider = async (
  { operations, interaction, visitor, releaseTurn, count, leave, reload }: AnyAnswer,
  connectorId: string,
  loginHint?: string,
): Promise<'gone' | 'too_many_requests'> => {
  const purpose = interaction.event === 'Register' ? 'register' : 'sign_in'
  releaseTurn()
  const begun = await operations.federated.begin(interaction, visitor, { connectorId, purpose, loginHint })
  if (begun.outcome !== 'begun') count('federated', begun.outcome)
  if (begun.outcome === 'too_many_requests') return 'too_many_requests'
  await (begun.outcome === 'begun' ? leave(begun.url) : reload())
  return 'gone'
}

/** The provider whose button was pressed. */
export const pressedProvider = ({ form }: Pick<AnyAnswer, 'form'>): string | undefined =>
  /^provider:([\w-]{1,128})$/.exec(onlyValue(form, 'choice') ?? '')?.[1]

/** Whose people sign in nowhere else, where an address is theirs. */
export const enterpriseOf = (
  { operations }: Pick<AnyAnswer, 'operations'>,
  typed: string,
): Promise<OfferedConnector | undefined> => operations.federated.enterpriseOf(typed.trim())
