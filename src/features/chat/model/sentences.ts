/** Cuts a text that comes in pieces into sentences. White space belongs to the sentence after it. */

const sentenceCharactersMax = 2_000
const end = /[.!?…]["'”’)\]*]*(?=\s)|(?=\n)/g

/** Where the first sentence of the text ends; 0 where that is not known yet. */
function endOf(text: string): number {
  const lead = text.length - text.trimStart().length
  end.lastIndex = lead
  const found = end.exec(text)
  const at = found ? found.index + found[0].length : 0
  if (at > lead && at <= sentenceCharactersMax) return at
  if (text.length <= sentenceCharactersMax) return 0
  const space = text.slice(lead).search(new RegExp(`(?<=^.{${sentenceCharactersMax - 500},}\\S)\\s`, 's'))
  return space > 0 ? lead + space : 0
}

export function createSplitter() {
  let buffer = ''
  return {
    push(text: string): string[] {
      buffer += text
      const found: string[] = []
      for (let at = endOf(buffer); at > 0; at = endOf(buffer)) {
        found.push(buffer.slice(0, at))
        buffer = buffer.slice(at)
      }
      return found
    },
    /** What is left once nothing follows. */
    rest(): string {
      const left = buffer
      buffer = ''
      return left
    },
  }
}
