/** Light or dark; without a choice, as the machine is set. */
export type Theme = 'system' | 'light' | 'dark'

const place = 'console theme'

export const currentTheme = (): Theme => {
  const kept = localStorage.getItem(place)
  return kept === 'light' || kept === 'dark' ? kept : 'system'
}

export const chooseTheme = (theme: Theme): void => {
  localStorage.setItem(place, theme)
  applyTheme()
}

export const applyTheme = (): void => {
  const theme = currentTheme()
  if (theme === 'system') delete document.documentElement.dataset['theme']
  else document.documentElement.dataset['theme'] = theme
}
