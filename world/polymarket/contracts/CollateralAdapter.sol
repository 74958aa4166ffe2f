// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {Addresses} from "./shared/Addresses.sol";
import {BinarySets} from "./shared/BinarySets.sol";
import {CollateralBridge} from "./shared/CollateralBridge.sol";

/// For markets of their own, whose positions are over USDC.e.
contract CollateralAdapter is CollateralBridge {
    using SafeERC20 for IERC20;

    function _collateral() internal pure override returns (address) {
        return Addresses.USDCE;
    }

    function _split(bytes32 conditionId, uint256 amount) internal override {
        IERC20(Addresses.USDCE).forceApprove(address(TOKENS), amount);
        TOKENS.splitPosition(Addresses.USDCE, 0, conditionId, BinarySets.both(), amount);
    }

    function _merge(bytes32 conditionId, uint256 amount) internal override {
        TOKENS.mergePositions(Addresses.USDCE, 0, conditionId, BinarySets.both(), amount);
    }

    function _redeem(bytes32 conditionId, uint256[] memory) internal override {
        TOKENS.redeemPositions(Addresses.USDCE, 0, conditionId, BinarySets.both());
    }
}
