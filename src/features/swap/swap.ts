import { implement, type Operation, taskOf } from '#kernel/contract/operation.ts'
import { admitSwap, answerFields, dryRun } from './admission.ts'
import { contract, type SwapInput } from './contract.ts'
import type { SwapDeps } from './deps.ts'
import { costedSteps } from './record-swap-cost.ts'
import { ownNames } from './task-data.ts'

export const createSwap = (deps: SwapDeps): Operation[] =>
  implement(contract, {
    execute: taskOf({
      admit: admitSwap(deps),
      steps: costedSteps(deps, ownNames),
      looksUp: true,
      answer: (input: SwapInput, caller) => dryRun(deps, input, caller),
      answerFields,
    }),
  })
