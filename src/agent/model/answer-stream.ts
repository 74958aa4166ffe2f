import type { Emit } from '#kernel/wire/chat-answerer.ts'
import { cleanAnswer } from './clean-text.ts'
import { type KnownFigures, markUnknown } from './known-figures.ts'
import { textBytesMax } from './limits.ts'
import { createSplitter } from './sentence-splitter.ts'

/**
 * Sends an answer sentence by sentence as it arrives. In mode `hold` nothing after an unknown number is sent, so that
 * this part can be asked for again. In mode `mark` such a number is sent with a remark.
 */
export type ReleaseMode = 'hold' | 'mark'
export type Release = {
  push(text: string): Promise<void>
  end(): Promise<{ said: string; rest: string }>
  said(): string
}

type Options = {
  emit: Emit
  figures: KnownFigures
  mode: ReleaseMode
  separator: string
  /** The text that was sent before, which the answer continues. */
  said: string
  /** The most characters that are sent, including those of `said`. */
  charactersMax: number
}

const bytesOf = (text: string): number => Buffer.byteLength(JSON.stringify(text))
const endsSentence = /[.!?…]["'”’)\]]*$/

export function createRelease({
  emit,
  figures,
  mode,
  separator,
  said: before,
  charactersMax,
}: Options): Release {
  const splitter = createSplitter()
  let said = before
  let rest = ''
  let [saidBytes, restBytes] = [bytesOf(before), 0]
  let sent: Promise<void> = Promise.resolve()
  let failure: unknown
  const shownOf = (sentence: string): string => {
    const text = cleanAnswer(sentence)
    if (mode === 'hold' && (rest !== '' || figures.unknownIn(text).length > 0)) {
      restBytes += bytesOf(text)
      if (restBytes <= textBytesMax) rest += text
      return ''
    }
    const marked = mode === 'mark' ? markUnknown(text, figures) : text
    const isFirst = said === ''
    const shown = isFirst ? marked.trimStart() : marked
    // A model that continues a text with words of the user begins without the space.
    const isJoined = !isFirst && said === before && /^[\p{L}\p{N}]/u.test(shown) && endsSentence.test(said)
    const piece = isFirst ? separator + shown : isJoined ? ` ${shown}` : shown
    saidBytes += bytesOf(piece)
    if (shown === '' || said.length + piece.length > charactersMax || saidBytes > textBytesMax) return ''
    said += piece
    return piece
  }
  const send = (sentences: readonly string[]): void => {
    if (failure !== undefined) throw failure
    const piece = sentences.map(shownOf).join('')
    if (piece === '') return
    // The next sentence is read without waiting for this write, so that one commit stores what arrives meanwhile.
    sent = emit.chunk(piece)
    sent.catch((error: unknown) => {
      failure = error
    })
  }
  return {
    said: () => said,
    async push(text) {
      send(splitter.push(text))
    },
    async end() {
      const left = splitter.rest().trimEnd()
      if (left !== '') send([left])
      await sent
      return { said, rest: rest.trimEnd() }
    },
  }
}
