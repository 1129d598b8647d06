/**
 * The version of the package. Not read from package.json, which a program that is bundled with nodelease does
 * not have; a test compares.
 */
export const VERSION = '0.1.0';
