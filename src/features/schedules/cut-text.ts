/** Shortens a text to a number of characters, and never cuts through a character. */
export function cutText(text: string, charactersMax: number): string {
  if (text.length <= charactersMax) return text
  // A character has at most two UTF-16 code units, so no more of the text than this has to be split into characters.
  const characters = [...text.slice(0, 2 * charactersMax + 1)]
  return characters.length > charactersMax ? `${characters.slice(0, charactersMax - 1).join('')}…` : text
}
