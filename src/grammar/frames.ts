import type { Frame } from './frame.ts'
import { accountFrames } from './frames-account.ts'
import { marketFrames, portfolioFrames } from './frames-reads.ts'
import { swapFrames } from './frames-swap.ts'
import { refusalFrames, talkFrames } from './frames-talk.ts'
import { earnFrames, venueFrames } from './frames-venue.ts'

/** Every intent of the chat. A read stands before an order, so that it wins a tie. */
export const frames: readonly Frame[] = [
  ...marketFrames,
  ...portfolioFrames,
  ...accountFrames,
  ...talkFrames,
  ...refusalFrames,
  ...swapFrames,
  ...venueFrames,
  ...earnFrames,
]

export const frameOf = (intent: string): Frame | undefined => frames.find((frame) => frame.intent === intent)
