/** The address where somebody signs in and comes back from to where they are now. */
export const signInAddress = ({ stepUp = false } = {}): string => {
  const query = new URLSearchParams({ return_to: location.pathname + location.search })
  if (stepUp) query.set('step_up', 'true')
  return `/console/sign-in?${query}`
}

export const signInAgain = (options: { stepUp?: boolean } = {}): void => location.assign(signInAddress(options))
