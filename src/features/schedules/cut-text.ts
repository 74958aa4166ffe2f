/** Cuts a text to a number of characters, and never through one of them. */
export function cutText(text: string, charactersMax: number): string {
  if (text.length <= charactersMax) return text
  // A character is at most two units long, so no more than these are looked at.
  const characters = [...text.slice(0, 2 * charactersMax + 1)]
  return characters.length > charactersMax ? `${characters.slice(0, charactersMax - 1).join('')}…` : text
}
