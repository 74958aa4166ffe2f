/** Some servers send a model's thoughts at the beginning of its text, between marks. They are no part of the answer. */

const open = '<think>'
const close = '</think>'

export type ThoughtFilter = {
  /** Returns the part of the text so far that is no thought and was not returned before. */
  push(text: string): string
  /** Returns the text that was held back because it could have become the mark of a thought. */
  end(): string
}

export function createThoughtFilter(): ThoughtFilter {
  let state: 'start' | 'thought' | 'text' = 'start'
  let held = ''
  const flush = (): string => {
    const text = held
    held = ''
    return text
  }
  return {
    push(text) {
      held += text
      if (state === 'start') {
        const begin = held.trimStart().slice(0, open.length)
        if (!open.startsWith(begin)) state = 'text'
        else if (begin === open) state = 'thought'
        else return ''
      }
      if (state === 'text') return flush()
      const at = held.indexOf(close)
      if (at < 0) {
        held = held.slice(1 - close.length)
        return ''
      }
      state = 'text'
      return flush()
        .slice(at + close.length)
        .trimStart()
    },
    end: () => (state === 'start' ? flush() : ''),
  }
}
