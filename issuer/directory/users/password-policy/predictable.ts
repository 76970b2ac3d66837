/** Parts of passwords that can be predicted. Texts are in lower case, as lists of code points. */

/** Two of a kind, or two neighbours, happen by chance. */
const threshold = 3

/** In the order of counting, of the alphabet, and of keyboards. */
const orders = [
  '0123456789',
  'abcdefghijklmnopqrstuvwxyz',
  'qwertyuiop',
  'asdfghjkl',
  'zxcvbnm',
  'qwertzuiop',
  'yxcvbnm',
  'azertyuiop',
  'qsdfghjklm',
  'wxcvbn',
  '1qaz',
  '2wsx',
  '3edc',
  '4rfv',
  '5tgb',
  '6yhn',
  '7ujm',
  '8ik',
  '9ol',
]
const walks = orders.flatMap((order) => [order, [...order].reverse().join('')])

/** How many of the characters from `place` on are the same one; 0 for fewer than three. */
export const repetitionAt = (characters: readonly string[], place: number): number => {
  let end = place + 1
  while (end < characters.length && characters[end] === characters[place]) end++
  return end - place >= threshold ? end - place : 0
}

/** The same text three times or more, and nothing else. */
export const isOneRepeated = (text: string): boolean => /^(.+?)\1{2,}$/su.test(text)

/** How many of the characters from `place` on are neighbours, such as `123`, `cba`, `qwe`; 0 for fewer than three. */
export const sequenceAt = (characters: readonly string[], place: number): number => {
  let text = characters[place]!
  let length = 1
  for (const character of characters.slice(place + 1)) {
    if (!walks.some((walk) => walk.includes(text + character))) break
    text += character
    length++
  }
  return length >= threshold ? length : 0
}

/** The length of the longest of the words that begins at a place. */
export const wordAt = (words: readonly string[]) => {
  const split = words.map((word) => [...word])
  return (characters: readonly string[], place: number): number =>
    split.reduce(
      (longest, word) =>
        word.length > longest && word.every((character, index) => characters[place + index] === character)
          ? word.length
          : longest,
      0,
    )
}
