/** Some servers begin a model's text with its reasoning in a `<think>` tag, which is no part of the answer. */

const open = '<think>'
const close = '</think>'

export type ThoughtFilter = {
  /** Takes more of the text; returns what is no reasoning and was not returned before. */
  push(text: string): string
  /** Ends the text; returns what was kept because it could have been the beginning of a tag. */
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
