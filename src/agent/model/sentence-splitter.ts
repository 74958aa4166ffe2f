/** Cuts a text that arrives in pieces into sentences. White space belongs to the sentence after it. */

const sentenceCharactersMax = 2_000
/** A text without white space for this long is no prose, so it is broken. */
const wordCharactersMax = 4_000
const space = /\s/g
/** The end of a sentence. In languages without spaces the marks alone end a sentence. */
const end = /[.!?…]["'”’)\]*]*(?=\s)|[。！？]["'”’」』）)\]*]*|(?=\n)/g

/** Returns where the first sentence of the text ends, or 0 if that is not known yet. */
function endOf(text: string): number {
  const lead = text.length - text.trimStart().length
  end.lastIndex = lead
  const found = end.exec(text)
  const at = found ? found.index + found[0].length : 0
  if (at > lead && at <= sentenceCharactersMax) return at
  if (text.length <= sentenceCharactersMax) return 0
  space.lastIndex = Math.max(lead + 1, sentenceCharactersMax - 500)
  return space.exec(text)?.index ?? 0
}

export function createSplitter() {
  let buffer = ''
  return {
    push(text: string): string[] {
      buffer += text
      const found: string[] = []
      const take = (length: number): string => {
        const taken = buffer.slice(0, length)
        buffer = buffer.slice(length)
        return taken
      }
      for (;;) {
        const at = endOf(buffer)
        if (at > 0 && at <= wordCharactersMax) found.push(take(at))
        else if (buffer.length > wordCharactersMax) found.push(`${take(sentenceCharactersMax)} `)
        else return found
      }
    },
    rest(): string {
      const left = buffer
      buffer = ''
      return left
    },
  }
}
