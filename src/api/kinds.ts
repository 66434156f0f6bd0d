import type { Kind } from './kind.ts'
import { sandboxClaimKind } from './kinds/sandbox-claim.ts'
import { sandboxKind } from './kinds/sandbox.ts'
import { sandboxSetKind } from './kinds/sandbox-set.ts'
import { sandboxTemplateKind } from './kinds/sandbox-template.ts'
import { sandboxWarmPoolKind } from './kinds/sandbox-warm-pool.ts'

export * from './kinds/sandbox-claim.ts'
export * from './kinds/sandbox.ts'
export * from './kinds/sandbox-set.ts'
export * from './kinds/sandbox-template.ts'
export * from './kinds/sandbox-warm-pool.ts'

/** Every kind that sandgate defines. */
export const kinds: readonly Kind[] = [
  sandboxKind,
  sandboxTemplateKind,
  sandboxWarmPoolKind,
  sandboxSetKind,
  sandboxClaimKind,
]
