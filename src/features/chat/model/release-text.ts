import type { Emit } from '#features/chat/engine.ts'
import { cleanAnswer } from './clean-text.ts'
import { type KnownFigures, markUnknown } from './known-figures.ts'
import { createSplitter } from './sentences.ts'

/**
 * Sends an answer by sentence as it comes. `hold`: what follows a number that is none of the known ones is not sent, so
 * that it can be asked for again. `mark`: such a number is sent with a remark.
 */
export type ReleaseMode = 'hold' | 'mark'
export type Release = {
  push(text: string): Promise<void>
  /** What was sent, and what was held. */
  end(): Promise<{ said: string; rest: string }>
  said(): string
}

type Options = { emit: Emit; figures: KnownFigures; mode: ReleaseMode; separator: string; said: string }

/** `said` is what was sent before, which the text continues. */
export function createRelease({ emit, figures, mode, separator, said: before }: Options): Release {
  const splitter = createSplitter()
  let said = before
  let rest = ''
  const send = async (sentence: string): Promise<void> => {
    const text = cleanAnswer(sentence)
    if (mode === 'hold' && (rest !== '' || figures.unknownIn(text).length > 0)) {
      rest += text
      return
    }
    const marked = mode === 'mark' ? markUnknown(text, figures) : text
    const shown = said === '' ? marked.trimStart() : marked
    if (shown === '') return
    const piece = said === '' ? separator + shown : shown
    said += piece
    await emit.chunk(piece)
  }
  return {
    said: () => said,
    async push(text) {
      for (const sentence of splitter.push(text)) await send(sentence)
    },
    async end() {
      const left = splitter.rest().trimEnd()
      if (left !== '') await send(left)
      return { said, rest: rest.trimEnd() }
    },
  }
}
