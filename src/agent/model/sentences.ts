/** Cuts a text that comes in pieces into sentences. White space belongs to the sentence after it. */

const sentenceCharactersMax = 2_000
/** What has no white space for so long is no prose: it is broken. */
const wordCharactersMax = 4_000
const space = /\s/g
/** The marks of languages without spaces end a sentence by themselves. */
const end = /[.!?…]["'”’)\]*]*(?=\s)|[。！？]["'”’」』）)\]*]*|(?=\n)/g

/** Where the first sentence of the text ends; 0 where that is not known yet. */
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
    /** What is left once nothing follows. */
    rest(): string {
      const left = buffer
      buffer = ''
      return left
    },
  }
}
